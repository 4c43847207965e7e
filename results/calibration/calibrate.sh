exegete calibrate --draws 12 --out results/calibration
