"""What runs leave behind besides their ops -> where that differs: files by what is in them, output, exit status."""
