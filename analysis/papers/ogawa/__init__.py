"""Ogawa, Nakamura, Saito: the load of a Publish/Subscribe map before and after levelling, beside what they say."""
