"""Running a trained model without PyTorch: plain NumPy, which is exact and can be watched, or C kernels."""
