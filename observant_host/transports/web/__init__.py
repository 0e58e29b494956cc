"""One HTTP exchange, done with care: what both HTTP transports stand on."""
