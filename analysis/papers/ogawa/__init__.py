"""Ogawa, Nakamura, Saito: the load of a Publish/Subscribe map before and after levelling, compared with the paper."""
