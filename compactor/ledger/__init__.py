"""Records of manifests, and what the compactor derives from them."""
