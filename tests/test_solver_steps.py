"""The steps of the exchange solver one by one."""


def test_placeholder():
    pass
