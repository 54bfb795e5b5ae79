"""The first rows of every data set, and every remote format written out by hand with these rows.

The texts have the form of what the archives serve, cut after two or three rows: headers, blanks, columns that are not used,
companions in the zip archives. YearPredictionMSD and MNIST have invented values of the right form.
"""

import gzip
import hashlib
import io
import struct
import zipfile

import numpy as np

SOIL = np.zeros(44, dtype=int)


def indicators(*columns):
    row = SOIL.copy()
    row[list(columns)] = 1
    return row.tolist()


def bits(*columns):
    row = np.zeros(1024, dtype=int)
    row[list(columns)] = 1
    return row.tolist()


def song(seed):
    return np.random.default_rng(seed).normal(scale=50, size=90).round(5).tolist()


def image(seed):
    return np.random.default_rng(seed).integers(0, 256, size=784, dtype=np.uint8).tolist()


ROWS = {  # features, target
    "bostonHousing": [
        ([0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98], 24),
        ([0.02731, 0, 7.07, 0, 0.469, 6.421, 78.9, 4.9671, 2, 242, 17.8, 396.9, 9.14], 21.6),
    ],
    "concrete": [
        ([540, 0, 0, 162, 2.5, 1040, 676, 28], 79.99),
        ([540, 0, 0, 162, 2.5, 1055, 676, 28], 61.89),
        ([332.5, 142.5, 0, 228, 0, 932, 594, 270], 40.27),
    ],
    "energy": [([0.98, 514.5, 294, 110.25, 7, 2, 0, 0], 15.55), ([0.98, 514.5, 294, 110.25, 7, 3, 0, 0], 15.55)],
    "kin8nm": [
        ([-0.015119208, 0.36074091, 0.46939777, 1.3096745, 0.98802387, -0.025492554, 0.66407094, 0.062762996], 0.53652416),
        ([0.36047801, -0.30139478, 0.62918307, -1.4401463, -0.74163685, -1.1967495, -1.0384439, -0.7174612], 0.3080143),
    ],
    "naval-propulsion-plant": [
        ([1.138, 3, 289.964, 1349.489, 6677.38, 7.584, 7.584, 464.006, 288, 550.563,
          1.096, 0.998, 5.947, 1.019, 7.137, 0.082], 0.95),
        ([2.088, 6, 6960.18, 1376.166, 6828.469, 28.204, 28.204, 635.401, 288, 581.658,
          1.331, 0.998, 7.282, 1.019, 10.655, 0.287], 0.95),
    ],
    "power-plant": [([8.34, 40.77, 1010.84, 90.01], 480.48), ([23.64, 58.49, 1011.4, 74.2], 445.75)],
    "protein-tertiary-structure": [
        ([13558.3, 4305.35, 0.31754, 162.173, 1872790.507, 215.359, 4287.87, 102, 27.0302], 17.284),
        ([6191.96, 1623.16, 0.26213, 53.3894, 803446.6966, 87.2024, 3328.91, 39, 38.5468], 6.021),
    ],
    "wine-quality-red": [
        ([7.4, 0.7, 0, 1.9, 0.076, 11, 34, 0.9978, 3.51, 0.56, 9.4], 5),
        ([7.8, 0.88, 0, 2.6, 0.098, 25, 67, 0.9968, 3.2, 0.68, 9.8], 5),
    ],
    "yacht": [
        ([-2.3, 0.568, 4.78, 3.99, 3.17, 0.125], 0.11),
        ([-2.3, 0.568, 4.78, 3.99, 3.17, 0.15], 0.27),
        ([-2.3, 0.568, 4.78, 3.99, 3.17, 0.175], 0.47),
    ],
    "covertype": [
        ([2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279, *indicators(0, 32)], 5),
        ([2590, 56, 2, 212, -6, 390, 220, 235, 151, 6225, *indicators(0, 32)], 5),
        ([2804, 139, 9, 268, 65, 3180, 234, 238, 135, 6121, *indicators(0, 15)], 2),
    ],
    "qsar-androgen-receptor": [(bits(14, 38, 42, 43), 1), (bits(6, 23, 1021), 1), (bits(2, 12, 988), 0)],  # rows shortened
    "YearPredictionMSD": [(song(1), 2001), (song(2), 1922), (song(3), 2011)],
    "mnist": [(image(1), 5), (image(2), 0), (image(3), 7)],
}  # fmt: skip


def expected(name):
    X, y = zip(*ROWS[name], strict=True)
    return np.array(X, dtype=float), np.array(y, dtype=float)


def archive(**members):
    """A zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return buffer.getvalue()


def delimited(rows, sign):
    return "\n".join(sign.join(str(value) for value in row) for row in rows) + "\n"


BOSTON = [
    " 0.00632  18.00   2.310  0  0.5380  6.5750  65.20  4.0900   1  296.0  15.30 396.90   4.98  24.00\n",
    " 0.02731   0.00   7.070  0  0.4690  6.4210  78.90  4.9671   2  242.0  17.80 396.90   9.14  21.60\n",
]
BOSTON_CMU = [  # two lines to a row
    " 0.00632  18.00   2.310  0  0.5380  6.5750  65.20  4.0900   1  296.0  15.30\n  396.90   4.98  24.00\n",
    " 0.02731   0.00   7.070  0  0.4690  6.4210  78.90  4.9671   2  242.0  17.80\n  396.90   9.14  21.60\n",
]
CONCRETE = (
    "Cement,Blast Furnace Slag,Fly Ash,Water,Superplasticizer,Coarse Aggregate,Fine Aggregate,Age,"
    "Concrete compressive strength\n"
    "540.0,0.0,0.0,162.0,2.5,1040.0,676.0,28,79.99\n540.0,0.0,0.0,162.0,2.5,1055.0,676.0,28,61.89\n"
    "332.5,142.5,0.0,228.0,0.0,932.0,594.0,270,40.27\n"
)
ENERGY = (  # Y2 is the cooling load
    "X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2\n0.98,514.5,294.0,110.25,7.0,2,0.0,0,15.55,21.33\n"
    "0.98,514.5,294.0,110.25,7.0,3,0.0,0,15.55,21.33\n"
)
KIN8NM = (
    "% a comment\n@relation kin8nm\n"
    + "".join(f"@attribute 'theta{k}' real\n" for k in range(1, 9))
    + "@attribute 'y' real\n@data\n"
    "-0.015119208,0.36074091,0.46939777,1.3096745,0.98802387,-0.025492554,0.66407094,0.062762996,0.53652416\n"
    "0.36047801,-0.30139478,0.62918307,-1.4401463,-0.74163685,-1.1967495,-1.0384439,-0.7174612,0.3080143\n"
)
NAVAL = (  # the last column is the turbine's decay
    "   1.1380000e+00   3.0000000e+00   2.8996400e+02   1.3494890e+03   6.6773800e+03   7.5840000e+00   7.5840000e+00   "
    "4.6400600e+02   2.8800000e+02   5.5056300e+02   1.0960000e+00   9.9800000e-01   5.9470000e+00   1.0190000e+00   "
    "7.1370000e+00   8.2000000e-02   9.5000000e-01   9.7500000e-01 \n"
    "   2.0880000e+00   6.0000000e+00   6.9601800e+03   1.3761660e+03   6.8284690e+03   2.8204000e+01   2.8204000e+01   "
    "6.3540100e+02   2.8800000e+02   5.8165800e+02   1.3310000e+00   9.9800000e-01   7.2820000e+00   1.0190000e+00   "
    "1.0655000e+01   2.8700000e-01   9.5000000e-01   9.7500000e-01 \n"
)
POWER = "AT,V,AP,RH,PE\n8.34,40.77,1010.84,90.01,480.48\n23.64,58.49,1011.4,74.2,445.75\n"
PROTEIN = (
    "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\r\n17.284,13558.30,4305.35,0.31754,162.1730,1872790.5070,215.3590,4287.87,102,27.0302\r\n"
    "6.021,6191.96,1623.16,0.26213,53.3894,803446.6966,87.2024,3328.91,39,38.5468\r\n"
)
WINE = (
    '"fixed acidity";"volatile acidity";"citric acid";"residual sugar";"chlorides";"free sulfur dioxide";'
    '"total sulfur dioxide";"density";"pH";"sulphates";"alcohol";"quality"\n'
    "7.4;0.7;0;1.9;0.076;11;34;0.9978;3.51;0.56;9.4;5\n7.8;0.88;0;2.6;0.098;25;67;0.9968;3.2;0.68;9.8;5\n"
)
YACHT = (
    "-2.3 0.568 4.78 3.99 3.17 0.125 0.11 \n-2.3 0.568 4.78 3.99  3.17 0.150 0.27 \n-2.3 0.568 4.78 3.99 3.17 0.175 0.47 \n \n"
)
QSAR = delimited([[*x, "positive" if y else "negative"] for x, y in ROWS["qsar-androgen-receptor"]], ";")
QSAR_01 = delimited([[*x, y] for x, y in ROWS["qsar-androgen-receptor"]], ";")
COVERTYPE = delimited([[*x, y] for x, y in ROWS["covertype"]], ",")
YEAR = delimited([[y, *x] for x, y in ROWS["YearPredictionMSD"]], ",")
YEAR_SHA256 = hashlib.sha256(YEAR.encode()).hexdigest()


def folder(name):
    """data.txt with the target in front and a column that is not used, and the two files of column numbers."""
    text = "".join("\t".join([repr(y), *map(repr, x), "-1 "]) + "\n" for x, y in ROWS[name])
    features = "".join(f"{k + 1:d}\n" for k in range(len(ROWS[name][0][0])))
    return [text.encode(), features.encode(), b"0.000000000000000000e+00\n"]


def idx(name):
    """Two images for training and one for testing."""
    X, y = (array.astype(np.uint8) for array in expected(name))
    parts = []
    for rows in (slice(0, 2), slice(2, 3)):
        count = len(y[rows])
        parts.append(gzip.compress(struct.pack(">IIII", 2051, count, 28, 28) + X[rows].tobytes()))
        parts.append(gzip.compress(struct.pack(">II", 2049, count) + y[rows].tobytes()))
    return parts


# For every data set, the files of each of its sources in the order of the registry.
FILES = {
    "bostonHousing": [
        folder("bostonHousing"),
        [("".join(f" line {k} of the header, 1 2 3\n" for k in range(22)) + "".join(BOSTON_CMU)).encode()],
        ["".join(BOSTON).encode()],
    ],
    "concrete": [folder("concrete"), [CONCRETE.encode()]],
    "energy": [folder("energy"), [b"\xef\xbb\xbf" + ENERGY.encode()]],
    "kin8nm": [folder("kin8nm"), [KIN8NM.encode()]],
    "naval-propulsion-plant": [
        folder("naval-propulsion-plant"),
        [archive(**{"UCI CBM Dataset/Features.txt": "1 - Lever position", "UCI CBM Dataset/data.txt": NAVAL})],
    ],
    "power-plant": [folder("power-plant"), [POWER.encode()]],
    "protein-tertiary-structure": [folder("protein-tertiary-structure"), [archive(**{"CASP.csv": PROTEIN})]],
    "wine-quality-red": [
        folder("wine-quality-red"),
        [archive(**{"winequality-white.csv": "no", "winequality-red.csv": WINE, "winequality.names": "no"})],
    ],
    "yacht": [folder("yacht"), [archive(**{"yacht_hydrodynamics.data": YACHT})]],
    "qsar-androgen-receptor": [[archive(**{"qsar_androgen_receptor.csv": QSAR})], [QSAR_01.encode()]],
    "mnist": [idx("mnist"), idx("mnist")],
    "covertype": [
        [archive(**{"covtype.info": "no", "covtype.data.gz": gzip.compress(COVERTYPE.encode())})],
        [gzip.compress(COVERTYPE.encode())],
    ],
    "YearPredictionMSD": [[archive(**{"YearPredictionMSD.txt": YEAR})], [archive(**{"YearPredictionMSD.txt": YEAR})]],
}
