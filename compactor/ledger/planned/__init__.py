"""What plans give to manifests: ranges of topics, landed objects of streams, and gaps."""
