"""Settings that scipy reads when it is imported."""

import os

# scikit-learn skips its checks of other array libraries without it.
os.environ["SCIPY_ARRAY_API"] = "1"
