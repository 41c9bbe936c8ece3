"""From announced files to manifests: the builder takes events in, the sealer ends the waiting of what is left over."""
