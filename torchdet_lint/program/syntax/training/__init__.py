"""The statements of a function -> the steps that it takes itself, and what it makes that is not trained."""
