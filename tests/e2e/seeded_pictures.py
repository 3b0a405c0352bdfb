"""Pictures for a net that was trained on CIFAR-10, none of which are here: seeded stand-ins.

leaves(): dead leaves, the model of photographs as things that hide one another (Lee, Mumford and
Huang, Occlusion models for natural images, 2001; Baradad et al., Learning to see by looking at
noise, 2021, train nets on them). What they are was settled by published statistics alone, before
any net was quantized on them:

- Ellipses of one colour, painted from the front until nothing shows through; as many of each size
  as makes a picture look the same at every scale: density r^-3, from one pixel to the whole side.
- Colours with the covariance of ImageNet's pixels (Krizhevsky et al., ImageNet classification with
  deep convolutional neural networks, 2012; the figures are those of fb.resnet.torch).
- Painted finer and averaged, as a camera does; then CIFAR-10's mean and deviation by channel, and
  whole values of 0 to 255, which is what the nets of MLPerf Tiny take.

fields(): coarse coloured blocks under independent noise, what was used before. Edges at every
fourth pixel and that noise are in no photograph.
"""

import numpy as np

SIDE = 32
FINER = 2  # painted in so many parts of a pixel
MEAN, DEVIATION = np.array([125.3, 123.0, 113.9]), np.array([63.0, 62.1, 66.7])
COLOUR_VARIANCES = np.array([0.2175, 0.0188, 0.0045])
COLOUR_DIRECTIONS = np.array([[-0.5675, 0.7192, 0.4009],
                              [-0.5808, -0.0045, -0.8140],
                              [-0.5836, -0.6948, 0.4203]])


def one_of_leaves(random):
    """[SIDE, SIDE, 3] of no particular mean and deviation."""
    side = SIDE * FINER
    picture, hidden = np.zeros((side, side, 3)), np.zeros((side, side), bool)
    places = np.arange(side) + 0.5
    while not hidden.all():
        # Radii of density r^-3 between one pixel and the side.
        most, least = float(side)**-2, float(FINER)**-2
        radius = (least + random.uniform() * (most - least))**-0.5
        row, column = random.uniform(-radius, side + radius, 2)
        angle, aspect = random.uniform(0, np.pi), random.uniform(0.5, 1)
        colour = COLOUR_DIRECTIONS @ (np.sqrt(COLOUR_VARIANCES) * random.normal(size=3))
        rows = slice(*np.searchsorted(places, [row - radius, row + radius]))
        columns = slice(*np.searchsorted(places, [column - radius, column + radius]))
        if hidden[rows, columns].all():
            continue
        y, x = places[rows, None] - row, places[None, columns] - column
        along = x * np.cos(angle) + y * np.sin(angle)
        across = (y * np.cos(angle) - x * np.sin(angle)) / aspect
        new = (along**2 + across**2 < radius**2) & ~hidden[rows, columns]
        picture[rows, columns][new] = colour
        hidden[rows, columns] |= new
    return picture.reshape(SIDE, FINER, SIDE, FINER, 3).mean((1, 3))


def halves(images):
    middle = len(images) // 2
    return images[:middle].astype(np.float32), images[middle:].astype(np.float32)


def leaves(random):
    """(200 pictures, 200 others)"""
    raw = np.stack([one_of_leaves(random) for _ in range(400)])
    raw = (raw - raw.mean((0, 1, 2))) / raw.std((0, 1, 2))
    return halves(np.clip(np.rint(MEAN + DEVIATION * raw), 0, 255))


def fields(random):
    """As leaves(): coarse coloured blocks of all contrasts, and noise."""
    coarse = random.normal(size=[400, 8, 8, 3])
    fine = coarse.repeat(4, 1).repeat(4, 2) + random.normal(size=[400, 32, 32, 3]) * 0.3
    contrast = random.uniform(10, 80, [400, 1, 1, 1])
    return halves(np.clip(fine * contrast + random.uniform(60, 190, [400, 1, 1, 3]), 0, 255))
