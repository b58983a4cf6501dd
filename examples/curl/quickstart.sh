#!/bin/sh
# Sends a code to a phone and verifies it, with nothing but curl.
#   TESSERA_URL=http://127.0.0.1:8080 TESSERA_KEY=sk_test_… sh examples/curl/quickstart.sh
set -eu

: "${TESSERA_URL:?the address of the API, such as http://127.0.0.1:8080}"
: "${TESSERA_KEY:?an API key: sk_test_… for the sandbox, sk_live_… for real messages}"
phone=${TESSERA_PHONE:-+14155552671}

# post PATH BODY [HEADER]: prints the answer; fails on 4xx and 5xx. The key goes in over standard
# input, because arguments can be read by everybody on the machine.
post() {
  printf 'Authorization: Bearer %s\n' "$TESSERA_KEY" |
    curl --silent --show-error --fail-with-body --max-time 30 "$TESSERA_URL$1" \
      --header @- --header 'Content-Type: application/json' --header "${3:-Accept: application/json}" \
      --data "$2"
}

# With an Idempotency-Key the request can be repeated: nothing goes out twice.
echo "send to $phone"
post /v1/otp/send "{\"phone\":\"$phone\"}" "Idempotency-Key: quickstart-$$-$(date +%s)"
echo

# In the sandbox no message goes out and every code is 123456.
case $TESSERA_KEY in
  sk_test_*) code=123456 ;;
  *)
    printf 'the code that arrived: '
    read -r code
    ;;
esac

echo "verify $phone"
post /v1/otp/verify "{\"phone\":\"$phone\",\"code\":\"$code\"}"
echo
