import sys
import time

import requests

FEEDS = {
    "shop_a": "http://127.0.0.1:8000/shop_a.csv",
    "shop_b": "http://127.0.0.1:8000/shop_b.csv",
}

for name, url in FEEDS.items():
    for pause in (60, 300, 0):
        try:
            answer = requests.get(url, timeout=30)
            answer.raise_for_status()
            with open(name + ".csv", "wb") as table:
                table.write(answer.content)
            break
        except requests.RequestException as error:
            print(name, error, file=sys.stderr)
            time.sleep(pause)
