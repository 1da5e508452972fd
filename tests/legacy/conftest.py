import pytest
from legacy_content import Shipped


@pytest.fixture(scope="session")
def shipped() -> Shipped:
    return Shipped()
