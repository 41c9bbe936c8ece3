"""The benchmark of the whole job under a steady load: feeder, builder, stream, verification, publication, metrics."""
