# shellcheck shell=bash
# The client of the image, or of the archive, knows already how it says who it is.

authenticate() { :; }
