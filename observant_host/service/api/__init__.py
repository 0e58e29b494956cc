"""The JSON API: on the private socket for whoever can open it, on the network by token and scope.

One table (`routes.ROUTES`) says what there is: the application, the OpenAPI document and the scopes
are made of it.
"""
