"""Makes calls of the vendor's library, one for each line of standard input, and prints what each returned or raised."""

import datetime
import json
import sys

from twilio.base.exceptions import TwilioRestException
from twilio.rest import Client

settings = json.loads(sys.argv[1])
client = Client(settings["user"], settings["password"])
client.verify.base_url = settings["url"]
service = client.verify.v2.services(settings["service"])

calls = {
    "create": lambda **fields: service.verifications.create(**fields),
    "check": lambda **fields: service.verification_checks.create(**fields),
    "fetch": lambda sid: service.verifications(sid).fetch(),
    "update": lambda sid, status: service.verifications(sid).update(status=status),
    "service": lambda: service.fetch(),
    "services": lambda: client.verify.v2.services.list(),
}


def shown(value):
    if isinstance(value, list):
        return [shown(one) for one in value]
    if isinstance(value, datetime.datetime):
        return {"datetime": value.isoformat()}
    if hasattr(value, "_properties"):
        return {name: one if isinstance(one, list) else shown(one) for name, one in value._properties.items()}
    return value


for line in sys.stdin:
    name, fields = json.loads(line)
    try:
        result = {"returned": shown(calls[name](**fields))}
    except TwilioRestException as error:
        result = {"raised": {"status": error.status, "code": error.code, "msg": error.msg, "uri": error.uri}}
    print(json.dumps(result), flush=True)
