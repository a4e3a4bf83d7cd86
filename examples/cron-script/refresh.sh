#!/bin/sh
exec curl -fsS -o "$REFRESHD_UID.csv" "$REFRESHD_PAYLOAD_INPUT_URL"
