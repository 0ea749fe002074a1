"""The models that a gateway offers: which deployment a name means, its versions, its workers, its text."""
