"""JSON where a GraphDef is expected."""


def files():
    return {"model.pb": b'{"nodes": []}'}
