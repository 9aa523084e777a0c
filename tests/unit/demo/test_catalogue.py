import pytest

from pageslots.demo.catalogue import (
    COLOURWAYS,
    KINDS,
    PAGES,
    PRODUCTS,
    STORES,
    chosen_language,
    expected_page,
    expected_product,
    of_kind,
    today_amount,
)


def test_every_kind_comes_in_every_colour_once():
    assert len(PRODUCTS) == 48
    assert set(PRODUCTS) == {f"{kind.key}-{colourway.key}" for kind in KINDS for colourway in COLOURWAYS}
    assert all(len(of_kind(kind.key)) == 6 for kind in KINDS)


def test_the_list_pages_hold_each_product_once():
    assert PAGES == 4
    pages = [expected_page(number) for number in range(1, PAGES + 1)]

    assert [len(page) for page in pages] == [12, 12, 12, 12]
    assert [sku for page in pages for sku in page] == list(PRODUCTS)
    assert expected_page(0) == expected_page(5) == []


def test_money_is_the_countrys_and_words_are_the_visitors():
    at_home = expected_product("DE", "mug-ember")
    abroad = expected_product("DE", "mug-ember", "en-US,en;q=0.9")

    assert (at_home.name, at_home.list_price) == ("Becher „Glut“", "19,90\xa0€")
    assert (abroad.name, abroad.list_price) == ("Ember mug", "€19.90")
    assert expected_product("SG", "mug-ember").list_price == "$29.90"
    assert expected_product("JP", "mug-ember").list_price == "￥3,280"


def test_some_products_cost_less_today_and_none_costs_more():
    for store in STORES.values():
        prices = [expected_product(store.country, sku) for sku in PRODUCTS]
        assert all(0 < price.today_amount <= price.list_amount for price in prices)
        assert any(price.today_amount < price.list_amount for price in prices)
        assert prices[0].today_amount == today_amount(store, PRODUCTS["mug-harbour"])


def test_some_products_are_sold_out():
    assert 0 < sum(product.stock == 0 for product in PRODUCTS.values()) < 10


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "de"),
        ("ja", "ja"),
        ("en-GB", "en"),
        ("fr-FR, ja;q=0.5, en;q=0.8", "en"),
        ("en;q=0.5, ja;q=0.5", "en"),
        ("fr, it;q=0.9", "de"),
        ("en;q=0", "de"),
        ("*", "de"),
        ("en;q=high, ja;q=0.1", "ja"),
        (";;;q=,,=", "de"),
    ],
)
def test_the_language_is_the_best_wish_that_the_shop_can_meet(header, language):
    assert chosen_language(header, "de") == language
