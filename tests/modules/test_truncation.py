import torch

from skflow.modules import Truncation


def test_the_first_features_stay():
    vectors = torch.arange(6.0).reshape(2, 3)
    features = {"sentence_embedding": vectors, "attention_mask": torch.ones(2, 1)}
    features = Truncation(2)(features)
    torch.testing.assert_close(features["sentence_embedding"], vectors[:, :2], rtol=0, atol=0)
    assert features["attention_mask"].shape == (2, 1)
    assert Truncation(2).get_embedding_dimension() == 2


def test_settings_survive_saving(tmp_path):
    Truncation(5).save(str(tmp_path))
    assert Truncation.load(str(tmp_path)).n_features == 5
