exec curl -fsS --proto =http,https -o "$REFRESHD_UID.csv" --url "$REFRESHD_PAYLOAD_INPUT_URL"
