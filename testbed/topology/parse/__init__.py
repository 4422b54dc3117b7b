"""From the text of a file to sections of the right shape, and the small languages inside its values."""
