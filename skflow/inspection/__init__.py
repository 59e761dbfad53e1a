"""The measurements that BERT-flow argues from, on any encoder, and plots of them."""

from ._comparison_display import CalibratorComparisonDisplay
from ._frequency import FrequencyBias, frequency_bias
from ._frequency_display import FrequencyNormDisplay
from ._isotropy import Isotropy, IsotropyReport, isotropy_report
from ._latent_display import LatentDistributionDisplay
from ._lexical import LexicalOverlap, lexical_overlap
from ._lexical_display import LexicalOverlapDisplay
from ._loss_display import LossCurveDisplay
from ._normality import Normality, normality
from ._similarity_display import SimilarityDisplay
from ._spectrum_display import SingularValueDisplay

__all__ = [
    "CalibratorComparisonDisplay",
    "FrequencyBias",
    "FrequencyNormDisplay",
    "Isotropy",
    "IsotropyReport",
    "LatentDistributionDisplay",
    "LexicalOverlap",
    "LexicalOverlapDisplay",
    "LossCurveDisplay",
    "Normality",
    "SimilarityDisplay",
    "SingularValueDisplay",
    "frequency_bias",
    "isotropy_report",
    "lexical_overlap",
    "normality",
]
