exegete calibrate --draws 60 --out results/calibration
