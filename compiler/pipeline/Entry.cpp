// Everything of libkiln-compiler is in the libraries it is linked from.
