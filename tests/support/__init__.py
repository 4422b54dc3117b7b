"""What several tests share: networks in virtual time, run folders with known truth, stand-ins for machines."""
