"""The making of an object of the project -> what is known of the object."""
