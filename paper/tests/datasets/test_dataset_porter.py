"""The stemmer, on the examples of Porter's article."""

from __future__ import annotations

import pytest

from paper.datasets.text import porter_stem

# the article's examples, carried through all five steps; agrees with nltk's ORIGINAL_ALGORITHM
EXAMPLES = """
caresses caress  ponies poni  ties ti  caress caress  cats cat  feed feed  agreed agre  plastered plaster  bled bled
motoring motor  sing sing  conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall
hissing hiss  fizzed fizz  failing fail  filing file  happy happi  sky sky  relational relat  conditional condit
rational ration  valenci valenc  hesitanci hesit  digitizer digit  conformabli conform  radicalli radic
differentli differ  vileli vile  analogousli analog  vietnamization vietnam  predication predic  operator oper
feudalism feudal  decisiveness decis  hopefulness hope  callousness callous  formaliti formal  sensitiviti sensit
sensibiliti sensibl  triplicate triplic  formative form  formalize formal  electriciti electr  electrical electr
hopeful hope  goodness good  revival reviv  allowance allow  inference infer  airliner airlin  gyroscopic gyroscop
adjustable adjust  defensible defens  irritant irrit  replacement replac  adjustment adjust  dependent depend
adoption adopt  homologou homolog  communism commun  activate activ  angulariti angular  homologous homolog
effective effect  bowdlerize bowdler  probate probat  rate rate  cease ceas  controll control  roll roll
"""


def test_examples_of_the_article():
    words = EXAMPLES.split()
    expected = dict(zip(words[::2], words[1::2], strict=True))
    assert {word: porter_stem(word) for word in expected} == expected


@pytest.mark.parametrize("word", ["", "a", "is", "x1s", "Émigrés", "mid-sized"])
def test_what_is_no_plain_word_is_left_alone(word):
    assert porter_stem(word) == word
