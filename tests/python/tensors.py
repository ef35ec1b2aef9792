"""dpctl's arrays, as `tensor`."""

try:
    import dpctl.tensor as tensor
except ImportError:  # dpctl's later releases moved it to dpnp.
    import dpnp.tensor as tensor

__all__ = ["tensor"]
