"""Every kind of fault on every kind of call to S3: the store keeps its contract, and jobs end exact."""
