CREATE TABLE refreshd_fences (key text PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE products (
    feed  text,
    sku   text,
    name  text NOT NULL,
    price numeric NOT NULL CHECK (price >= 0),
    PRIMARY KEY (feed, sku)
);
