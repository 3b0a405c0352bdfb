"""Amazon's own signer of S3 requests (python3-botocore), as the oracle of npucd's."""

import datetime
import threading
import unittest.mock

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.config
    import botocore.credentials
    IS_THERE = True
except ImportError:
    IS_THERE = False

_LOCK = threading.Lock()


def authorization(method, url, headers, payload, key, secret, token, region, seconds):
    """The header Authorization of a request at that time; its URL is encoded."""
    request = botocore.awsrequest.AWSRequest(method=method, url=url, headers=headers, data=payload)
    request.context["client_config"] = botocore.config.Config(s3={"payload_signing_enabled": True})
    credentials = botocore.credentials.Credentials(key, secret, token or None)
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(tzinfo=None)
    with _LOCK, unittest.mock.patch("botocore.auth.datetime") as clock:
        clock.datetime.utcnow.return_value = now
        botocore.auth.S3SigV4Auth(credentials, "s3", region).add_auth(request)
    return request.headers["Authorization"]
