"""What runs in a training pod; there these files lie side by side in one folder, without renderer/."""
