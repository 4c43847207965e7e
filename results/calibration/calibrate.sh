exegete calibrate --draws 30 --out results/calibration
