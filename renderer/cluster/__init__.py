"""What touches a Kubernetes cluster: the only package that imports its client."""
