"""Which card fits an exception: message templates, the card files, and the index made from them."""
