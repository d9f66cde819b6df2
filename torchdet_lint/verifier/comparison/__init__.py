"""Two traces -> what differed first, and why."""
