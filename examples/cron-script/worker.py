import refreshd
import requests


def refresh(attempt):
    answer = requests.get(attempt.payload["input_url"], timeout=30)
    answer.raise_for_status()
    with open(attempt.uid + ".csv", "wb") as table:
        table.write(answer.content)


refreshd.Worker(refresh).run()
