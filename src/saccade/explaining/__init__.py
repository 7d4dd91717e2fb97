"""Why a model answered as it did: parts of it or of its input are taken away, and what that changes is measured."""
