"""Loop nests of convolutions, dense layers and tensors: loops, tiles and borders, given the lanes that compute."""
