"""What a board (a Raspberry Pi) runs beside its node: for its link, its clock and its files. Standard library only."""
