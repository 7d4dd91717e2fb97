"""Two small tasks with pictures in, each one file that trains and one that answers: what an addition takes."""
