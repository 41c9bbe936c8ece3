"""Records of landed log data: chains of links, notes, and the objects and gaps that manifests get."""
