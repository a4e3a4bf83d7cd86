exec curl -fsS -o "$REFRESHD_UID.csv" --url "$REFRESHD_PAYLOAD_INPUT_URL"
