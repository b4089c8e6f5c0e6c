/* Put in front of the run-time by -include: what happens where cores meet. */
#ifndef POINTS_H
#define POINTS_H
void point(void);
#define NN_CORES_POINT() point()
#endif
